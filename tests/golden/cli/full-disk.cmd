drdotnet-trace events fixtures/rich-net10.nettrace.zst > /dev/full
