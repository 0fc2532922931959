drdotnet-trace report --json --top 3 fixtures/stuck-net10.nettrace.zst cpu gc tasks
