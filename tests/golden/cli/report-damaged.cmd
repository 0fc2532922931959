# Seven bytes of an event's head are wrong: the block is lost, not what comes after it.
zstd -qdc fixtures/cpu-net8.nettrace.zst >t.nettrace
printf '\377\377\377\377\377\377\377' | dd of=t.nettrace bs=1 seek=8401 conv=notrunc 2>/dev/null
drdotnet-trace report t.nettrace summary >out
code=$?
sed -n 1,12p out
exit $code
