drdotnet-trace events --thread 42 --from 1us --to 1100ns fixtures/synthetic-v4.nettrace
drdotnet-trace events --name h? --id 7 --limit 1 fixtures/synthetic-v4.nettrace
drdotnet-trace events --provider demo --name nothing fixtures/synthetic-v4.nettrace
