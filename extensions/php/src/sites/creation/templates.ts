/** What new sites begin with. */

/** A page that says that PHP runs. It shows nothing of the machine. */
export const page = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>It works</title></head>
<body><p>PHP <?= htmlspecialchars(PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION) ?> works. Put your own files in the place of this one.</p></body>
</html>
`;
