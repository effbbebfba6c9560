// Writes what the Go library that Kubernetes uses makes of each line of lines.tsv:
//
//	go run . < lines.tsv > golden.tsv
//
// A line is a time, a tab, and a schedule as a JSON string. The result adds a tab and the next times, or "error".
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const count = 6

func next(line string, from time.Time) (out string) {
	defer func() {
		if recover() != nil {
			out = "error"
		}
	}()
	schedule, err := cron.ParseStandard(line)
	if err != nil {
		return "error"
	}
	var times []string
	at := from
	for range count {
		at = schedule.Next(at)
		if at.IsZero() {
			break
		}
		times = append(times, at.UTC().Format(time.RFC3339))
	}
	return strings.Join(times, " ")
}

func main() {
	time.Local = time.UTC
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		from, quoted, _ := strings.Cut(in.Text(), "\t")
		at, err := time.Parse(time.RFC3339, from)
		if err != nil {
			panic(err)
		}
		line, err := strconv.Unquote(quoted)
		if err != nil {
			panic(in.Text())
		}
		fmt.Printf("%s\t%s\t%s\n", from, quoted, next(line, at.UTC()))
	}
}
