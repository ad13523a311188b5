// SPDX-License-Identifier: Apache-2.0

// The scoring API around score.go: GET /healthz, /config and /metrics, POST /scoring.
//
// HOST and PORT, or --port, set the address, and SCORING_TOKEN the bearer token that the scoring call
// must carry; without it the call needs none. It needs nothing but Go's standard library.
package main

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxBodyBytes      = 8 << 20
	maxDiscardedBytes = 4 * maxBodyBytes
)

// Series is one time series: its labels and its samples.
type Series struct {
	Metric map[string]string `json:"metric"`
	Values []Sample          `json:"values"`
}

// Sample is a time in unix seconds and a value, which may be NaN or infinite.
type Sample struct {
	Time, Value float64
}

// UnmarshalJSON reads [seconds, "number"].
func (sample *Sample) UnmarshalJSON(encoded []byte) error {
	var text string
	pair := []any{&sample.Time, &text}
	if err := json.Unmarshal(encoded, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("a sample must be [seconds, \"number\"]")
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("the value %q of a sample is not a number", text)
	}
	sample.Value = value
	return nil
}

// Result is one score and its labels.
type Result struct {
	Metric map[string]string `json:"metric"`
	Score  float64           `json:"score"`
}

func seriesOf(body []byte) ([]Series, int, error) {
	var request struct {
		Data *[]Series `json:"data"`
	}
	if !json.Valid(body) {
		return nil, http.StatusBadRequest, errors.New("the body is not JSON")
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, http.StatusUnprocessableEntity, err
	}
	if request.Data == nil {
		return nil, http.StatusUnprocessableEntity, errors.New("data: a list of series is needed")
	}
	return *request.Data, http.StatusOK, nil
}

func scoring(token string) http.HandlerFunc {
	expected := []byte("Bearer " + token)
	return func(answer http.ResponseWriter, request *http.Request) {
		sent := []byte(request.Header.Get("Authorization"))
		if token != "" && subtle.ConstantTimeCompare(sent, expected) != 1 {
			answer.Header().Set("WWW-Authenticate", "Bearer")
			problem(answer, http.StatusUnauthorized, "the Authorization header must be: Bearer, and the scorer's token")
			return
		}
		if kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type")); kind != "application/json" {
			problem(answer, http.StatusUnsupportedMediaType, "the body must be JSON: send it as application/json")
			return
		}
		body, err := io.ReadAll(io.LimitReader(request.Body, maxBodyBytes+1))
		if err != nil {
			problem(answer, http.StatusBadRequest, "the body ended early")
			return
		}
		if len(body) > maxBodyBytes {
			// Read on before the refusal: closing earlier would reset the connection.
			_, _ = io.CopyN(io.Discard, request.Body, maxDiscardedBytes)
			problem(answer, http.StatusRequestEntityTooLarge, "the body is longer than 8 MiB: ask for less")
			return
		}
		data, status, err := seriesOf(body)
		if err != nil {
			problem(answer, status, err.Error())
			return
		}
		write(answer, http.StatusOK, "application/json", map[string]any{"results": Score(data)})
	}
}

func problem(answer http.ResponseWriter, status int, detail string) {
	document := map[string]any{"title": http.StatusText(status), "status": status, "detail": detail}
	write(answer, status, "application/problem+json", document)
}

func write(answer http.ResponseWriter, status int, kind string, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		log.Print(err)
		http.Error(answer, "the scorer failed; its log has the details", http.StatusInternalServerError)
		return
	}
	answer.Header().Set("Content-Type", kind)
	answer.WriteHeader(status)
	_, _ = answer.Write(body)
}

func serving(document any) http.HandlerFunc {
	return func(answer http.ResponseWriter, _ *http.Request) {
		write(answer, http.StatusOK, "application/json", document)
	}
}

// metrics counts answers by path and status, and tells Prometheus.
type metrics struct {
	sync.Mutex
	counts map[string]int
}

// counted is a response whose status is known.
type counted struct {
	http.ResponseWriter
	status int
}

func (answer *counted) WriteHeader(status int) {
	answer.status = status
	answer.ResponseWriter.WriteHeader(status)
}

func (found *metrics) around(routes *http.ServeMux) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		path := "other"
		if _, pattern := routes.Handler(request); pattern != "" {
			path = request.URL.Path
		}
		known := &counted{answer, http.StatusOK}
		routes.ServeHTTP(known, request)
		found.Lock()
		defer found.Unlock()
		found.counts[fmt.Sprintf("scorer_requests_total{code=\"%d\",path=%q}", known.status, path)]++
	}
}

func (found *metrics) ServeHTTP(answer http.ResponseWriter, _ *http.Request) {
	found.Lock()
	defer found.Unlock()
	answer.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintln(answer, "# TYPE scorer_requests_total counter")
	for series, count := range found.counts {
		fmt.Fprintln(answer, series, count)
	}
}

// portOf returns the port of the arguments, or of PORT; 0 for a free one.
func portOf(arguments []string) (string, error) {
	words := strings.Split(strings.Join(arguments, "="), "=")
	port := environment("PORT", "8000")
	switch {
	case len(words) == 2 && words[0] == "--port":
		port = words[1]
	case len(arguments) > 0:
		return "", errors.New("the only option is --port PORT, once")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q is not a port from 0 to 65535", port)
	}
	return port, nil
}

func main() {
	port, err := portOf(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", serving(map[string]string{"status": "ok"}))
	routes.HandleFunc("GET /config", serving(Config))
	routes.HandleFunc("POST /scoring", scoring(environment("SCORING_TOKEN", "")))
	found := &metrics{counts: map[string]int{}}
	routes.Handle("GET /metrics", found)
	listener, err := net.Listen("tcp", net.JoinHostPort(environment("HOST", "127.0.0.1"), port))
	if err != nil {
		log.Fatalf("my-scorer can't listen: %v; choose another port with --port", err)
	}
	fmt.Printf("my-scorer listens on http://%s\n", listener.Addr())
	server := http.Server{Handler: found.around(routes), ReadTimeout: 30 * time.Second}
	log.Fatal(server.Serve(listener))
}
