package main

import (
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
