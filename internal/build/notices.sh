#!/bin/sh
# Prints the licenses of the libraries and files of others in the image's program. It fails if a library has none.
set -eu
cd "$(dirname "$0")/../.."
list='{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}'
libraries=$(go list -deps -tags nodev -f "$list" ./cmd/sendquota | grep -v '^github.com/sendquota/' | sort -u)
echo "$libraries" | while read -r path version folder; do
	printf '\n# %s %s\n' "$path" "$version"
	none=true
	for file in "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/NOTICE*; do
		if [ -f "$file" ]; then
			none=false
			printf '\n'
			cat "$file"
		fi
	done
	if $none; then
		echo "$path has no license in $folder" >&2
		exit 1
	fi
done
for file in internal/*/vendor/*.LICENSE.txt; do
	printf '\n# %s\n\n' "$(basename "$file" .LICENSE.txt)"
	cat "$file"
done
printf '\n# Go %s\n\n' "$(go env GOVERSION)"
cat "$(go env GOROOT)/LICENSE"
