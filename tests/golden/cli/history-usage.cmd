drdotnet-trace history list --since 2026-12-01 --until 2026-11-01 --store .
drdotnet-trace history top --until 2001-01-01 --store .
drdotnet-trace history mark '' --store .
drdotnet-trace history show abc --store .
drdotnet-trace history trend --store .
