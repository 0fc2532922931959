cat fixtures/synthetic-v4.nettrace | zstd -q --long=27 > x.zst
drdotnet-trace events x.zst
drdotnet-trace events --zstd-window 27 x.zst
