module prewarm/tools/workload

go 1.24.0
