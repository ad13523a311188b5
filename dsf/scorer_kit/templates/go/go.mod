module my-scorer

go 1.22
