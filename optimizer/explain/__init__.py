"""Why a solution is as it is, computed by solving changed problems again."""
