"""Who may use the optimizer: users by TokenReview, rights by SubjectAccessReview.

Shell: asks the hub. `rights` is pure. Both doors, REST and MCP, use `authorized_optimizer`.
May import `service`, the layers below it, and `dsf`.
"""
