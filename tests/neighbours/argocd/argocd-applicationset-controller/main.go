// Argo CD's ApplicationSet controller alone: its own program has every other component, too.
package main

import (
	"os"

	command "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
)

func main() {
	if err := command.NewCommand().Execute(); err != nil {
		os.Exit(1)
	}
}
