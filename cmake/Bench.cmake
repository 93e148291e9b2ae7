# bench/NAME.cc or bench/NAME/*.cc -> bench_NAME. Run them with `./dev bench NAME`.
