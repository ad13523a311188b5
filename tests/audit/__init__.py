"""What `make audit` checks without a network: secrets in the repository, licences of packages."""
