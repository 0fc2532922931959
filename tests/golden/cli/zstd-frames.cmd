head -c 200 fixtures/synthetic-v4.nettrace | zstd -q > x.zst
tail -c +201 fixtures/synthetic-v4.nettrace | zstd -q >> x.zst
drdotnet-trace events x.zst
