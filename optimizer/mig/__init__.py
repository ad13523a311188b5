"""MIG: which layouts a GPU can have, which of them serve a demand, and the policies for them."""
