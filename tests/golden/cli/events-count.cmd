drdotnet-trace events --count fixtures/exceptions-net8.nettrace.zst
