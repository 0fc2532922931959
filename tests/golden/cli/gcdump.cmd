printf '\024\000\000\000!FastSerialization.1\004\004\001\012\000\000\000\010\000\000\000\012\000\000\000GCHeapDump\006' > x.gcdump
drdotnet-trace report x.gcdump
