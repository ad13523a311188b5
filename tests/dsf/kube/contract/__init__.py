"""What every adapter of the port must do; the real API server is the model.

The tests only use the fixtures `kube` and `namespace`. `DSF_CONTRACT_KUBECONFIG=FILE pytest
tests/dsf/kube/contract` runs them against a real API server as well: one whose
kube-controller-manager runs, and where the tests may install CustomResourceDefinitions.
"""
