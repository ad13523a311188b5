"""The commands `dsf optimizer`, `dsf plan` and `dsf mig`."""
