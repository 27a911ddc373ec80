/** What the fields of a host are called, and the help below them, by their place: `*` stands for any entry of a list. */
const words: Readonly<Record<string, readonly [title: string, help: string]>> = {
    domain: [
        'Name',
        'The name that visitors type, such as shop.example. *.shop.example stands for every name one level below.'
    ],
    aliases: ['Further names', 'Other names that lead to the same place.'],
    upstreams: [
        'Upstreams',
        'Where the application listens. With several, requests are shared among them; all of them speak the same way.'
    ],
    'upstreams.*.address': [
        'Address',
        '127.0.0.1:3000, or http://, https:// or h2c:// with host and port. A socket is unix/ and its absolute path.'
    ],
    'upstreams.*.weight': ['Weight', 'Its share of the requests, when they are shared by weight.'],
    ssl: ['Serve HTTPS', 'Gets a certificate, and answers on the HTTPS port.'],
    sslMode: ['Certificate from', ''],
    certificateId: ['Certificate', 'One that covers every name of this host.'],
    forceHttps: ['Send visitors from HTTP to HTTPS', ''],
    hsts: [
        'Tell browsers to use HTTPS alone (HSTS)',
        'A browser that was told so does not come back over HTTP for a long time.'
    ],
    access: ['Rules', 'Every rule that is set must be met.'],
    'access.allow': [
        'Allowed addresses',
        'Addresses or ranges such as 203.0.113.0/24. Without any, every address may enter.'
    ],
    'access.deny': ['Denied addresses', 'They stay out, also where they are allowed above.'],
    'access.basicAuth': [
        'Users with passwords',
        'The browser asks for them. Without any, no password is asked for.'
    ],
    'access.basicAuth.*.username': ['User name', ''],
    'access.basicAuth.*.password': ['Password', 'It is never shown again.'],
    'access.forwardAuth': ['Ask another service', 'A login service that decides about each request.'],
    'access.forwardAuth.url': [
        'Its address',
        'Each request is put to this address; a 2xx answer lets it in.'
    ],
    'access.forwardAuth.copyHeaders': [
        'Headers to pass on',
        'Headers of its answer that the application gets, such as Remote-User.'
    ],
    loadBalancing: ['Load balancing', ''],
    'loadBalancing.policy': ['How an upstream is chosen', ''],
    'loadBalancing.key': [
        'Header or cookie',
        'The name of the header (X-Session-Id) or cookie (lb) that keeps a visitor with one upstream.'
    ],
    'loadBalancing.retries': [
        'Further tries',
        'How many other upstreams are tried when one cannot be reached.'
    ],
    'loadBalancing.tryDurationSeconds': ['Seconds for all tries', ''],
    healthCheck: ['Health check', ''],
    'healthCheck.path': ['Path that is asked', 'Such as /health. Without one, upstreams are not asked.'],
    'healthCheck.intervalSeconds': ['Seconds between checks', ''],
    'healthCheck.timeoutSeconds': ['Seconds until it counts as failed', ''],
    'healthCheck.expectStatus': ['Status that is healthy', '200 for that one, 2 for every 2xx.'],
    'healthCheck.passive': ['Watch real requests', 'Takes an upstream out that fails too often.'],
    'healthCheck.passive.maxFails': ['Failures until it is taken out', ''],
    'healthCheck.passive.failDurationSeconds': ['Seconds that a failure counts', ''],
    locations: ['Paths', 'Paths that lead to another application. The longest one that fits wins.'],
    'locations.*.path': ['Path', '/api stands for /api and what is below it, not for /apis.'],
    'locations.*.upstream': [
        'Address',
        '127.0.0.1:3000, or http://, https:// or h2c:// with host and port. A socket is unix/ and its absolute path.'
    ],
    'locations.*.stripPrefix': ['Take the path off', 'The application sees /users instead of /api/users.'],
    securityHeaders: [
        'Send the usual security headers',
        'Against framing and guessed content types; names of server software are taken away.'
    ],
    headers: ['Headers', 'Changes are made in this order.'],
    'headers.request': ['Of the request', 'On its way to the application.'],
    'headers.response': ['Of the answer', 'On its way to the visitor.'],
    'headers.*.*.op': ['What to do', ''],
    'headers.*.*.name': ['Header', ''],
    'headers.*.*.value': ['Value', 'A value of Authorization and its like is never shown again.'],
    cors: ['Other origins (CORS)', 'Lets pages of other sites call this one from a browser.'],
    'cors.origins': ['Origins', 'Such as https://app.example, or * alone for all.'],
    'cors.methods': ['Methods', ''],
    'cors.headers': ['Request headers', ''],
    'cors.credentials': ['Let cookies through', 'Not together with *.'],
    'cors.maxAgeSeconds': ['Seconds that a browser remembers it', ''],
    maintenance: ['Maintenance: answer 503 to every visitor', ''],
    compression: ['Compress answers', 'What compresses well, such as text.'],
    bodyLimitBytes: ['Largest request body, in bytes', 'Without one, there is no limit.'],
    timeouts: ['Time limits', 'Without one, the engine’s own limit counts.'],
    'timeouts.connectSeconds': ['Seconds to connect', ''],
    'timeouts.readSeconds': ['Seconds to wait for the answer', ''],
    'timeouts.writeSeconds': ['Seconds to send', ''],
    errorPages: ['Error pages', 'Shown in place of every answer with that status, also of the application.'],
    'errorPages.*.status': ['Status', ''],
    'errorPages.*.body': ['Page (HTML)', ''],
    redirect: ['Redirect', ''],
    'redirect.to': ['Address', 'With http:// or https://.'],
    'redirect.code': ['Kind', ''],
    'redirect.keepPath': ['Keep path and query', '/a?b=1 leads to the same below the new address.'],
    static: ['Folder', ''],
    'static.root': ['Path of the folder', 'An absolute path that the engine can read.'],
    'static.browse': ['List folders', 'Folders without an index file show what is in them.'],
    'static.index': ['Index files', 'The first that exists stands for its folder.'],
    'static.spaFallback': [
        'One-page application',
        'Paths that do not exist get the index file of the folder.'
    ],
    php: ['PHP', ''],
    'php.root': ['Folder with the scripts', 'An absolute path.'],
    'php.fastcgi': ['FastCGI server', '127.0.0.1:9000, or unix/ and the absolute path of a socket.'],
    'php.upstreams': ['FastCGI servers', 'Requests are shared by weight.'],
    'php.upstreams.*.address': ['Address', '127.0.0.1:9000, or unix/ and the absolute path of a socket.'],
    'php.upstreams.*.weight': ['Weight', ''],
    'php.index': ['Index scripts', 'The first that exists stands for its folder.'],
    advanced: [
        'Handlers',
        'In the engine’s own language, before the host’s own. Needs a permission of its own.'
    ],
    tags: ['Tags', ''],
    notes: ['Notes', ''],
    enabled: ['Enabled', ''],
    type: ['Type', '']
};

/** The words of one field; none for a field that this page does not know. */
export const hostWords = (path: string): readonly [title: string, help: string] | undefined => words[path];

/** Names of all fields that have words. */
export const wordedFields: readonly string[] = Object.keys(words);
