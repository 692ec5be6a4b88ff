package outbound

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

const (
	frameHead = 9 // bytes
	// frameStart is the head of a frame and the part of its payload that a wire reads.
	frameStart = frameHead + 8
)

// frames finds the HTTP/2 frames in the bytes of one direction, however these are split.
type frames struct {
	skip   int // bytes before the first frame
	each   func(head http2.FrameHeader, payload []byte)
	start  []byte // of the present frame: at most frameStart bytes
	head   http2.FrameHeader
	headed bool // the head is known
	left   int  // remaining bytes of the payload
}

// follow reads the next bytes, and calls each for every frame that ends in them, with the beginning of its payload.
func (f *frames) follow(p []byte) {
	n := min(f.skip, len(p))
	f.skip, p = f.skip-n, p[n:]
	for len(p) > 0 {
		n := f.left
		if !f.headed {
			n = frameHead - len(f.start)
		}
		n = min(n, len(p))
		f.start = append(f.start, p[:min(n, frameStart-len(f.start))]...)
		p = p[n:]
		if f.headed {
			f.left -= n
		} else if len(f.start) == frameHead {
			f.head = http2.FrameHeader{
				Length:   binary.BigEndian.Uint32(f.start) >> 8,
				Type:     http2.FrameType(f.start[3]),
				Flags:    http2.Flags(f.start[4]),
				StreamID: binary.BigEndian.Uint32(f.start[5:]) &^ (1 << 31),
			}
			f.headed, f.left = true, int(f.head.Length)
		}
		if f.headed && f.left == 0 {
			f.each(f.head, f.start[frameHead:])
			f.headed, f.start = false, f.start[:0]
		}
	}
}

// between reports whether the next byte begins a frame.
func (f *frames) between() bool { return f.skip == 0 && len(f.start) == 0 }
