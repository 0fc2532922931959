( drdotnet-trace events fixtures/rich-net10.nettrace.zst; echo "exit $?" >&2 ) | head -1 | cut -c 1-60
