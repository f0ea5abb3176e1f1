module fishplate.example/oracle

go 1.26.0
