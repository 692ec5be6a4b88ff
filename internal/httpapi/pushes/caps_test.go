package pushes

import "testing"

// TestCapView_Incomplete: a count that ended early says so.
func TestCapView_Incomplete(t *testing.T) {
	if v := capViewOf(0, mostCapCounted+1); v.Used != mostCapCounted || v.Complete || v.Limit != nil {
		t.Errorf("%+v", v)
	}
	if v := capViewOf(5, mostCapCounted); v.Used != mostCapCounted || !v.Complete || *v.Limit != 5 {
		t.Errorf("%+v", v)
	}
}
