package liquid

import (
	"errors"
	"fmt"
)

// rows is a tablerow.
type rows struct {
	loopItems
	body body
}

func (p *parser) rows(t token) (node, error) {
	all, err := loopArguments(t)
	if err != nil {
		return nil, err
	}
	body, err := p.ended(t)
	return rows{all, body}, err
}

func (n rows) blank() bool { return false }

func (n rows) run(m *machine) error {
	all, err := n.slice(m)
	if err != nil {
		return err
	}
	cols := all.n
	if n.cols != nil {
		if cols, err = m.wholeOf(n.cols, "the columns of a tablerow"); err != nil {
			return err
		}
	}
	at := &position{length: all.n, cols: max(cols, 1)}
	defer m.keep("tablerowloop", n.name)()
	m.vars["tablerowloop"] = at
	if err := m.write("<tr class=\"row1\">\n"); err != nil {
		return err
	}
	for at.index = range all.n {
		if err := m.write(fmt.Sprintf(`<td class="col%d">`, at.index%at.cols+1)); err != nil {
			return err
		}
		left := n.once(m, all.at(at.index), n.body)
		if left != nil && !errors.Is(left, errBreak) {
			return left
		}
		if err := m.write("</td>"); err != nil {
			return err
		}
		if left != nil {
			break
		}
		if at.index%at.cols == at.cols-1 && at.index < all.n-1 {
			if err := m.write(fmt.Sprintf("</tr>\n<tr class=\"row%d\">", at.index/at.cols+2)); err != nil {
				return err
			}
		}
	}
	return m.write("</tr>\n")
}
