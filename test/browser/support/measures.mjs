/** From now on, what moves on the page without anybody's doing is noted. */
export function watchJumps(page) {
  return page.evaluate(() => {
    window.jumps = []
    new PerformanceObserver(list => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (hadRecentInput) continue
        window.jumps.push([value.toFixed(4), ...sources.map(({ node }) => node?.id || node?.className || node?.nodeName || '?')].join(' '))
      }
    }).observe({ type: 'layout-shift' })
  })
}

export function jumps(page) {
  return page.evaluate(() => window.jumps)
}

/** Texts that stand out from their ground by less than WCAG AA asks for: 4.5, or 3 where they are large. */
export function contrasts(page) {
  return page.evaluate(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
    const rgba = color => {
      canvas.clearRect(0, 0, 1, 1)
      canvas.fillStyle = color
      canvas.fillRect(0, 0, 1, 1)
      return [...canvas.getImageData(0, 0, 1, 1).data]
    }
    const over = ([r, g, b, a], below) => [r, g, b].map((part, i) => (part * a + below[i] * (255 - a)) / 255)
    const light = parts => {
      const [r, g, b] = parts.map(part => {
        const share = part / 255
        return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const ground = element => {
      const layers = []
      for (let at = element; at !== null; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor))
      return layers.reduce((below, layer) => over(layer, below), [255, 255, 255])
    }
    const faint = new Set()
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const element = node.parentElement
      const box = element.getBoundingClientRect()
      if (node.data.trim() === '' || box.width < 2 || box.height < 2 || element.closest('.hidden, .skip, noscript, script') !== null)
        continue
      if (!element.checkVisibility({ visibilityProperty: true })) continue
      const style = getComputedStyle(element)
      const below = ground(element)
      const [a, b] = [light(over(rgba(style.color), below)), light(below)].sort((x, y) => y - x)
      const ratio = (a + 0.05) / (b + 0.05)
      const size = Number.parseFloat(style.fontSize)
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
      if (ratio < (large ? 3 : 4.5))
        faint.add(`${ratio.toFixed(2)} ${element.className || element.tagName} ${node.data.trim().slice(0, 30)}`)
    }
    return [...faint]
  })
}
