"""The charts as a reviewer reads them: by helm, helm-docs and kube-score."""
