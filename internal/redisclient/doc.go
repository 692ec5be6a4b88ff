// Package redisclient opens clients of Redis.
//
// Other packages name its [Client] and [Options], and not the clients and options of go-redis. Each package that names
// those is compiled with 1,500 methods of go-redis, which takes 3 s of a processor and 9 MB of the build cache: they
// contain a weak.Pointer[redis.Client], and an instance of a generic type is compiled where it is used.
// [redis.Cmdable] costs nothing. Functions that name them are not inlined, because their callers would then name them.
package redisclient
