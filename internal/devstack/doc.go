// Package devstack finds or starts the Postgres and the Redis that development and tests need, on a machine that may
// have neither. It is for `make run`, tests and benchmarks; the settings of production programs name their servers.
//
// For each of the two services the first of these that works is used:
//
//  1. the URL that a person named for this run, as it is;
//  2. a private child process on a free loopback port, made from binaries
//     found on this machine;
//  3. as root with apt-get, or with brew: the package is installed, then 2;
//  4. Redis only, and only if allowed: miniredis, inside this process;
//  5. an error that lists what was tried and says what to do.
//
// 5. an error that lists what was tried and names the remedy.
// A PgBouncer, which tests put in front of Postgres, is found or installed in the same way, and is always a child
// process. So is a Chromium for tests of pages; the tests start it.
//
// No server is used that was neither named for this run nor started here. DATABASE_URL
// and REDIS_URL name the servers of the services, in a shell of production too: `sendquota
// dev` and tests ignore both, and read --database-url and --redis-url, or TEST_DATABASE_URL
// and TEST_REDIS_URL (see testenv).
//
// # How a child process lives and dies
//
// Postgres refuses to run as root, so when we are root the children run as
// "nobody". On Linux the kernel signals a child when the thread that started
// it ends, which also covers kill -9 of this process. Every child inherits
// the open lock file of its folder: the lock is free only when this process
// and everything it started are gone, so no other process ever starts a server on
// data still in use, or removes it.
package devstack
