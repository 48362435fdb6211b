// A WHEP viewer on pion, for the test: its arguments are the URL and the token. It sends its candidates
// by PATCH, restarts ICE on each line of its standard input, and ends with the input. One JSON message a
// line.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pion/webrtc/v4"
)

const fragmentType = "application/trickle-ice-sdpfrag"

var output sync.Mutex

func tell(message map[string]any) {
	text, err := json.Marshal(message)
	must(err)
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type resource struct {
	url, token string
}

func (r resource) call(method, kind, ifMatch, body string) (*http.Response, string) {
	request, err := http.NewRequest(method, r.url, strings.NewReader(body))
	must(err)
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Content-Type", kind)
	if ifMatch != "" {
		request.Header.Set("If-Match", ifMatch)
	}
	reply, err := http.DefaultClient.Do(request)
	must(err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	must(err)
	return reply, string(text)
}

func attribute(sdp, name string) string {
	return regexp.MustCompile(`(?m)^a=` + name + `:(.*?)\r?$`).FindStringSubmatch(sdp)[1]
}

// credentials are the lines of a fragment that name the ICE session and the media section.
func credentials(sdp string) string {
	return fmt.Sprintf("a=ice-ufrag:%s\r\na=ice-pwd:%s\r\nm=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:%s\r\n",
		attribute(sdp, "ice-ufrag"), attribute(sdp, "ice-pwd"), attribute(sdp, "mid"))
}

// withCredentials is an SDP with the ICE session of a fragment.
func withCredentials(sdp, fragment string) string {
	for _, name := range []string{"ice-ufrag", "ice-pwd"} {
		sdp = regexp.MustCompile(`a=`+name+`:[^\r\n]*`).
			ReplaceAllString(sdp, "a="+name+":"+attribute(fragment, name))
	}
	return sdp
}

func main() {
	pc, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	must(err)
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		_, err = pc.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{
			Direction: webrtc.RTPTransceiverDirectionRecvonly,
		})
		must(err)
	}
	var generation atomic.Int64
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		// Frames of each ICE session.
		var last, frames int64
		for {
			packet, _, err := track.ReadRTP()
			if err != nil {
				tell(map[string]any{"event": "ended", "kind": track.Kind().String()})
				return
			}
			if now := generation.Load(); now != last {
				last, frames = now, 0
			}
			if packet.Marker || track.Kind() == webrtc.RTPCodecTypeAudio {
				frames++
			}
			if frames == 50 {
				frames++
				tell(map[string]any{
					"event": "frames", "kind": track.Kind().String(),
					"codec": track.Codec().MimeType, "generation": last,
				})
			}
		}
	})
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		tell(map[string]any{"event": "state", "state": state.String()})
	})
	// Candidates wait until there is a resource that takes them.
	candidates := make(chan string, 100)
	pc.OnICECandidate(func(candidate *webrtc.ICECandidate) {
		if candidate == nil {
			candidates <- "a=end-of-candidates\r\n"
		} else {
			candidates <- "a=" + candidate.ToJSON().Candidate + "\r\n"
		}
	})

	offer, err := pc.CreateOffer(nil)
	must(err)
	must(pc.SetLocalDescription(offer))
	endpoint := resource{os.Args[1], os.Args[2]}
	reply, answer := endpoint.call("POST", "application/sdp", "", offer.SDP)
	location, err := url.Parse(reply.Header.Get("Location"))
	must(err)
	base, err := url.Parse(endpoint.url)
	must(err)
	viewer := resource{base.ResolveReference(location).String(), endpoint.token}
	etag := reply.Header.Get("ETag")
	tell(map[string]any{"event": "answer", "status": reply.StatusCode, "etag": etag})
	must(pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}))

	trickle := func(sdp, etag string) {
		for line := range candidates {
			reply, _ := viewer.call("PATCH", fragmentType, etag, credentials(sdp)+line)
			if strings.Contains(line, "end-of-candidates") {
				tell(map[string]any{"event": "trickle", "status": reply.StatusCode})
				return
			}
		}
	}
	trickle(offer.SDP, etag)

	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		again, err := pc.CreateOffer(&webrtc.OfferOptions{ICERestart: true})
		must(err)
		must(pc.SetLocalDescription(again))
		reply, fragment := viewer.call("PATCH", fragmentType, "*", credentials(again.SDP))
		tell(map[string]any{
			"event": "restart", "status": reply.StatusCode, "isNew": reply.Header.Get("ETag") != etag,
		})
		etag = reply.Header.Get("ETag")
		answer = withCredentials(answer, fragment)
		must(pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}))
		trickle(again.SDP, etag)
		generation.Add(1)
	}
	reply, _ = viewer.call("DELETE", "text/plain", "", "")
	tell(map[string]any{"event": "deleted", "status": reply.StatusCode})
	must(pc.Close())
}
