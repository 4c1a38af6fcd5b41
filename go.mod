module github.com/keyfuse-io/keyfuse

go 1.26
