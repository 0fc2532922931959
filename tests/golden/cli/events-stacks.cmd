drdotnet-trace events --stacks --name ExceptionThrown --limit 1 fixtures/exceptions-net8.nettrace.zst
