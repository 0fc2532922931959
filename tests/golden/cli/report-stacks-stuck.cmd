drdotnet-trace report fixtures/stuck-net10.nettrace.zst stacks --top 0 | head -40
