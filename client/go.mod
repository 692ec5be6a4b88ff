module github.com/sendquota/sendquota/client

go 1.26.0
