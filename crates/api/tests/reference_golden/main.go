// Writes what Go's own reference library says about each line of lines.txt:
//
//	go run . < lines.txt > golden.tsv
//
// A line is the inside of a JSON string in which {3*ab} stands for ababab. Lines that begin with "# " and
// empty lines are left out. The columns of the result are: the reference as a JSON string, the verdict,
// familiar name, tag or digest, full form. The verdict is "no", "ok", or "lossy" if Go accepts the reference
// but reads its familiar form as another image.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"regexp"
	"strconv"
	"strings"

	// A digest algorithm counts only when it is linked in, as it is in every program that speaks TLS.
	_ "crypto/sha256"
	_ "crypto/sha512"

	"github.com/distribution/reference"
)

var repeated = regexp.MustCompile(`\{([0-9]+)\*([^}]*)\}`)

func main() {
	fmt.Println("# Made by `go run . < lines.txt > golden.tsv` with distribution/reference v0.6.0; do not edit.")
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		if line := scanner.Text(); line != "" && !strings.HasPrefix(line, "# ") {
			fmt.Println(judge(expand(line)))
		}
	}
	if err := scanner.Err(); err != nil {
		log.Fatal(err)
	}
}

func expand(line string) string {
	line = repeated.ReplaceAllStringFunc(line, func(found string) string {
		parts := repeated.FindStringSubmatch(found)
		count, err := strconv.Atoi(parts[1])
		if err != nil {
			log.Fatal(err)
		}
		return strings.Repeat(parts[2], count)
	})
	var text string
	if err := json.Unmarshal([]byte(`"`+line+`"`), &text); err != nil {
		log.Fatalf("%s: %v", line, err)
	}
	return text
}

func judge(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		log.Fatal(err)
	}
	named, err := reference.ParseDockerRef(text)
	if err != nil {
		return fmt.Sprintf("%s\tno\t\t\t", quoted)
	}
	verdict := "lossy"
	again, err := reference.ParseDockerRef(reference.FamiliarString(named))
	if err == nil && again.String() == named.String() {
		verdict = "ok"
	}
	tag := ""
	switch version := named.(type) {
	case reference.Digested:
		tag = version.Digest().String()
	case reference.Tagged:
		tag = version.Tag()
	}
	return strings.Join([]string{string(quoted), verdict, reference.FamiliarName(named), tag, named.String()}, "\t")
}
