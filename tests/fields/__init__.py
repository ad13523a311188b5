"""That no field of any door is accepted and ignored: one table for all doors.

A door publishes a schema. `test_every_field.py` reads the fields from the schema and asks the door
once without each field and once with it; a `Case` says the value. A field without a case fails.
"""
