// The program of the pods in tests, and of their sandboxes. It does what its arguments say:
//
//	wait                        until it is asked to end
//	exit CODE [after SECONDS]   with this code
//	fail-until FILE             exits with 0 if the file exists, otherwise with 1
//	fail-times COUNT FILE       exits with 1 so many times, then with 0; the file keeps the count
//
// Without arguments it waits. It ends at once when it is asked to, as a process 1 only does if it says so.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	code, after := plan(os.Args[1:])
	fmt.Println("workload begins:", os.Args[1:])
	select {
	case <-asked:
		fmt.Println("workload was asked to end")
	case <-after:
		fmt.Println("workload ends with", code)
		os.Exit(code)
	}
}

// plan says with which code the program ends by itself, and when; a nil channel never comes.
func plan(arguments []string) (int, <-chan time.Time) {
	switch verb, rest := split(arguments); {
	case verb == "wait" && len(rest) == 0:
		return 0, nil
	case verb == "exit" && len(rest) == 1:
		return number(rest[0]), time.After(0)
	case verb == "exit" && len(rest) == 3 && rest[1] == "after":
		return number(rest[0]), time.After(seconds(rest[2]))
	case verb == "fail-until" && len(rest) == 1:
		return failure(!exists(rest[0])), time.After(0)
	case verb == "fail-times" && len(rest) == 2:
		return failure(count(rest[1]) <= number(rest[0])), time.After(0)
	}
	refuse("cannot understand", arguments)
	return 0, nil
}

func split(arguments []string) (string, []string) {
	if len(arguments) == 0 {
		return "wait", nil
	}
	return arguments[0], arguments[1:]
}

func failure(failed bool) int {
	if failed {
		return 1
	}
	return 0
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// count adds this run to those that the file knows, one byte each, and returns how many there are.
func count(path string) int {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		refuse("cannot count:", err)
	}
	defer file.Close()
	if _, err := file.WriteString("."); err != nil {
		refuse("cannot count:", err)
	}
	about, err := file.Stat()
	if err != nil {
		refuse("cannot count:", err)
	}
	return int(about.Size())
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		refuse("not a number:", text)
	}
	return value
}

func seconds(text string) time.Duration {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		refuse("not a number of seconds:", text)
	}
	return time.Duration(value * float64(time.Second))
}

// refuse ends with a code that no test asks for by accident.
func refuse(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(64)
}
