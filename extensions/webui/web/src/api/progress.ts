/** A request whose progress can be followed: `fetch` says nothing while it sends. */

/** Makes a request as `fetch` does, and says how many bytes were sent. The function has the shape of `fetch`. */
export function fetchWithProgress(
    onProgress: (sent: number) => void
): (address: string, init: RequestInit & { readonly headers: Record<string, string> }) => Promise<Response> {
    return (address, { method = 'GET', headers, body = null, signal = null }) =>
        new Promise((resolve, reject) => {
            const request = new XMLHttpRequest();
            request.open(method, address);
            request.responseType = 'text';
            Object.entries(headers).forEach(([name, value]) => request.setRequestHeader(name, value));
            request.upload.addEventListener('progress', ({ loaded }) => onProgress(loaded));
            request.addEventListener('load', () =>
                resolve(
                    new Response(request.responseText, {
                        status: request.status,
                        statusText: request.statusText,
                        headers: headersOf(request)
                    })
                )
            );
            request.addEventListener('error', () => reject(new TypeError('The request failed')));
            request.addEventListener('abort', () => reject(new DOMException('Stopped', 'AbortError')));
            signal?.addEventListener('abort', () => request.abort());
            request.send(body as XMLHttpRequestBodyInit | null);
        });
}

function headersOf(request: XMLHttpRequest): Headers {
    const lines = request.getAllResponseHeaders().trim().split('\r\n');
    return new Headers(
        lines.map((line): [string, string] => [
            line.slice(0, line.indexOf(':')),
            line.slice(line.indexOf(':') + 1).trim()
        ])
    );
}
