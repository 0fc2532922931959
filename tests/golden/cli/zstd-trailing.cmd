zstd -q < fixtures/synthetic-v4.nettrace > x.zst
echo rubbish >> x.zst
drdotnet-trace events x.zst
