module dynamic-scoring-framework/tests/ecosystem

go 1.26.3

require (
	github.com/argoproj/argo-cd/v3 v3.5.7
	sigs.k8s.io/kueue v0.15.2
)
