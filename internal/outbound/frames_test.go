package outbound

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
)

// FuzzFrames holds that frames finds the same frames as x/net/http2 does, however the bytes are cut.
func FuzzFrames(f *testing.F) {
	var wire bytes.Buffer
	framer := http2.NewFramer(&wire, nil)
	framer.WriteSettings(streams(7))
	framer.WriteSettingsAck()
	framer.WriteData(3, true, bytes.Repeat([]byte("x"), 40))
	framer.WriteGoAway(1<<31-1, http2.ErrCodeNo, []byte("bye"))
	framer.WriteRSTStream(5, http2.ErrCodeRefusedStream)
	for _, cut := range []uint8{1, 2, 9, 17, 255} {
		f.Add(wire.Bytes(), cut)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		type frame struct {
			http2.FrameHeader
			start string
		}
		var got, want []frame
		followed := frames{each: func(head http2.FrameHeader, payload []byte) { got = append(got, frame{head, string(payload)}) }}
		for rest := data; len(rest) > 0; {
			n := min(int(cut)+1, len(rest))
			followed.follow(rest[:n])
			rest = rest[n:]
		}
		in := bytes.NewReader(data)
		for {
			head, err := http2.ReadFrameHeader(in)
			payload := make([]byte, min(int(head.Length), in.Len()))
			if _, _ = io.ReadFull(in, payload); err != nil || len(payload) < int(head.Length) {
				break
			}
			want = append(want, frame{head, string(payload[:min(len(payload), frameStart-frameHead)])})
		}
		if len(got) != len(want) {
			t.Fatalf("%d frames of %d", len(got), len(want))
		}
		for i := range want {
			if got[i].String() != want[i].String() || got[i].start != want[i].start {
				t.Errorf("frame %d: %+v, want %+v", i, got[i], want[i])
			}
		}
	})
}

// TestWire_PingBetweenFrames: a ping that is due while a frame is under way follows it.
func TestWire_PingBetweenFrames(t *testing.T) {
	ours, theirs := net.Pipe()
	w := newWire(ours)
	defer w.Close()
	got := make(chan byte, 1024)
	go func() {
		defer close(got)
		for buf := make([]byte, 1); ; {
			if _, err := theirs.Read(buf); err != nil {
				return
			}
			got <- buf[0]
		}
	}()
	var frame bytes.Buffer
	_ = http2.NewFramer(&frame, nil).WriteData(1, true, bytes.Repeat([]byte("x"), 20))
	whole := append([]byte(http2.ClientPreface), frame.Bytes()...)
	ended, end := context.WithCancel(t.Context())
	end()
	for i := range whole { // the ping is asked for in the preface, in the head and in the payload
		if _, err := w.Write(whole[i : i+1]); err != nil {
			t.Fatal(err)
		}
		if i == 3 || i == len(http2.ClientPreface)+4 || i == len(whole)-4 {
			w.writing.Lock()
			w.pinging = true
			w.sendPing()
			w.writing.Unlock()
		}
	}
	if err := w.ping(ended); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	want := http2.ClientPreface + string(pingFrame) + frame.String() + string(pingFrame) + string(pingFrame)
	for i := range len(want) {
		if b := <-got; b != want[i] {
			t.Fatalf("byte %d is %x, want %x", i, b, want[i])
		}
	}
}
