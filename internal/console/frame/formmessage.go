package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sendquota/sendquota/client"
)

// FormMessage returns the message of the form: title and text, or all fields as JSON.
func (f *Form) FormMessage() (client.Message, error) {
	message := client.Message{}
	if text := f.Field("message"); text != "" {
		if err := ReadObject(text, message); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"title", "body"} {
		if text := f.Field("message." + name); text != "" {
			message[name] = text
		}
	}
	return message, nil
}

// ReadObject reads the members of a JSON object. Numbers keep their spelling.
func ReadObject(text string, into map[string]any) error {
	in := json.NewDecoder(bytes.NewReader([]byte(text)))
	in.UseNumber()
	if err := in.Decode(&into); err != nil {
		return fmt.Errorf("this is not a JSON object: %w", err)
	}
	if into == nil {
		return errors.New("this is null, not a JSON object")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the JSON object")
	}
	return nil
}
