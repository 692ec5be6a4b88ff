package lists

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestCSVFile: a file reads as an audience does, and keeps its lines at their numbers when its columns are renamed.
func TestCSVFile(t *testing.T) {
	wide := "\xFF\xFE"
	for _, unit := range utf16.Encode([]rune("id\tcity\r\na\tŌsaka\r\n")) {
		wide += string([]byte{byte(unit), byte(unit >> 8)})
	}
	for name, row := range map[string]struct{ text, columns, records, renamed string }{
		"commas":                 {"id, city\na,\"x, y\"\n\nb\nc,z\n", "id|city", "2 a|x, y;5 c|z;", "\"recipient\",\"\"\na,\"x, y\"\n\nb\nc,z\n"},
		"semicolons":             {"\xEF\xBB\xBFid;city\r\na;x,y\r\n", "id|city", "2 a|x,y;", "\"recipient\";\"\"\na;x,y\r\n"},
		"Excel's hint":           {"sep=;\r\nid;city\r\na;x\r\n", "id|city", "3 a|x;", "sep=;\n\"recipient\";\"\"\na;x\r\n"},
		"UTF-16":                 {wide, "id|city", "2 a|Ōsaka;", "\"recipient\"\t\"\"\na\tŌsaka\r\n"},
		"old line end":           {"id,city\ra,x\r", "id|city", "2 a|x;", "\"recipient\",\"\"\na,x\n"},
		"a line break":           {"id,city\na,\"x\ny\"\nb,z", "id|city", "2 a|x\ny;4 b|z;", "\"recipient\",\"\"\na,\"x\ny\"\nb,z"},
		"a heading of two lines": {"id,\"ci\nty\"\na,x\n", "id|ci\nty", "3 a|x;", "\"recipient\",\"\"\n\na,x\n"},
		"an open mark":           {"id,city\na,\"x\nb,z\n", "id|city", "3 b|z;", "\"recipient\",\"\"\na,\"x\nb,z\n"},
	} {
		file, err := OpenCSV(strings.NewReader(row.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Join(file.Columns, "|"); got != row.columns {
			t.Errorf("%s: the columns are %s", name, got)
		}
		records := ""
		for {
			cells, line, err := file.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			records += string(rune('0'+line)) + " " + strings.Join(cells, "|") + ";"
		}
		if records != row.records {
			t.Errorf("%s: the records are %q", name, records)
		}
		again, err := OpenCSV(strings.NewReader(row.text))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(again.Renamed([]string{"recipient", ""}))
		if err != nil || string(text) != row.renamed {
			t.Errorf("%s: renamed it is %q, %v", name, text, err)
		}
	}
	for text, want := range map[string]string{
		"": "is missing", "PK\x03\x04": "a workbook", "i\x00d\x00": "UTF-16", "\"id\n": "not closed", "\xFF\n": "UTF-8", strings.Repeat(",", MaxColumns): "at most 500 columns, has 501",
	} {
		if _, err := OpenCSV(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text[:min(len(text), 9)], err)
		}
	}
}
