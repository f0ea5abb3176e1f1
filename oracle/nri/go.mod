module fishplate.example/oracle/nri

go 1.26.0
