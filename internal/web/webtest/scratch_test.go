package webtest

import (
	"os"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func (p *Page) shot(name string) {
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	p.require(err)
	require.NoError(p.t, os.WriteFile("/tmp/page-"+name+".png", png, 0o600))
}

