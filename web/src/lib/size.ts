import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

// How wide an element is now; 0 before it is laid out.
export function useWidth(element: RefObject<HTMLElement>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const target = element.current;
    if (!target) return;
    const observer = new ResizeObserver(() => setWidth(target.clientWidth));
    observer.observe(target);
    setWidth(target.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}
