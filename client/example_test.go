package client_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// TestMain runs the examples on the API that SENDQUOTA_API names, if there is one: internal/clienttest starts one for them.
func TestMain(m *testing.M) {
	if os.Getenv("SENDQUOTA_API") == "" {
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// newClient returns a client of that API.
func newClient() *client.Client {
	c, err := client.New(os.Getenv("SENDQUOTA_API"), os.Getenv("SENDQUOTA_API_KEY"), client.Config{})
	if err != nil {
		panic(err)
	}
	return c
}

// inDays is noon, so many days from now.
func inDays(n int) time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, n).Add(12 * time.Hour)
}

// A push is accepted, and a second one within the same minute is not: the refusal says when there is a place.
func Example() {
	ctx, c := context.Background(), newClient()
	noon := inDays(30)
	push, err := c.Pushes.Submit(ctx, "order-7", client.NewPush{Recipient: "user-42", Message: client.Message{"title": "Sale"}, SendAt: noon})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(push.Status, push.SendAt.Equal(noon))

	_, err = c.Pushes.Submit(ctx, "", client.NewPush{Recipient: "user-42", Message: client.Message{"title": "Sale"}, SendAt: noon.Add(30 * time.Second)})
	var full *client.QuotaExceeded
	if errors.As(err, &full) {
		fmt.Println(full.Violations[0].Rule, "has no place for", full.NextAvailableAt.Sub(noon))
	}

	push, err = c.Pushes.Cancel(ctx, push.ID)
	fmt.Println(push.Status, err)
	// Output:
	// scheduled true
	// per-minute has no place for 1m0s
	// canceled <nil>
}

// A batch answers for each of its pushes.
func ExamplePushesAPI_SubmitBatch() {
	noon := inDays(31)
	batch, err := newClient().Pushes.SubmitBatch(context.Background(), "", client.NewBatch{Pushes: []client.NewPush{
		{Recipient: "user-7", Message: client.Message{"title": "1"}, SendAt: noon},
		{Recipient: "user-7", Message: client.Message{"title": "2"}, SendAt: noon},
		{Recipient: "user-8", Message: client.Message{"title": "3"}, SendAt: noon},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, result := range batch.Results {
		var full *client.QuotaExceeded
		fmt.Println(result.Status, errors.As(result.Err(), &full))
	}
	// Output:
	// 201 false
	// 409 true
	// 201 false
}

// An atomic batch is refused as a whole, and says which pushes have no place.
func ExampleBatchRefused() {
	noon := inDays(32)
	_, err := newClient().Pushes.SubmitBatch(context.Background(), "", client.NewBatch{Atomic: true, Pushes: []client.NewPush{
		{Recipient: "user-10", Message: client.Message{"title": "1"}, SendAt: noon},
		{Recipient: "user-10", Message: client.Message{"title": "2"}, SendAt: noon},
	}})
	var refused *client.BatchRefused
	if !errors.As(err, &refused) {
		fmt.Println(err)
		return
	}
	var full *client.QuotaExceeded
	fmt.Println(refused.Status, refused.Name(), errors.As(refused.Results[1].Err(), &full))
	// Output:
	// 409 quota-exceeded true
}

// A list is read page by page.
func ExamplePushesAPI_List() {
	ctx, c := context.Background(), newClient()
	for day := range 3 {
		if _, err := c.Pushes.Submit(ctx, "", client.NewPush{Recipient: "user-9", Message: client.Message{"title": "Hi"}, SendAt: inDays(40 + day)}); err != nil {
			fmt.Println(err)
			return
		}
	}
	for push, err := range c.Pushes.List(ctx, client.PushesOptions{Recipient: "user-9", Status: client.PushStatusScheduled}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(push.SendAt.Equal(inDays(40)))
	}
	// Output:
	// true
	// false
	// false
}

// Each fault of a request is told.
func ExampleInvalid() {
	_, err := newClient().Pushes.Submit(context.Background(), "", client.NewPush{Channel: "pigeon", Message: client.Message{"title": "Hi"}})
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		for _, fault := range invalid.Errors {
			fmt.Println(fault.Location)
		}
	}
	// Unordered output:
	// body.recipient
	// body.channel
}

// What is known of recipients decides with the policy.
func ExampleRecipientsAPI_Put() {
	ctx, c := context.Background(), newClient()
	stored, err := c.Recipients.Put(ctx, "aiko", client.NewRecipient{TimeZone: "Asia/Tokyo", OptOuts: &client.NewOptOuts{Categories: []string{"marketing"}}})
	fmt.Println(stored.TimeZone, err)
	_, err = c.Pushes.Submit(ctx, "", client.NewPush{Recipient: "aiko", Category: "marketing", Message: client.Message{"title": "Sale"}})
	var unwanted *client.OptedOut
	if errors.As(err, &unwanted) {
		fmt.Println(unwanted.OptedOut.Categories)
	}
	// Output:
	// Asia/Tokyo <nil>
	// [marketing]
}
