"""`make audit`: secrets in the repository and licences of packages; `make advisories` asks OSV."""
