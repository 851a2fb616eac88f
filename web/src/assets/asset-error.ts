// Failures while assets are read.
//
// Owns `AssetError`. Rules: the message names the asset and says what to do.

export class AssetError extends Error {
  override readonly name = "AssetError";
}

export function missing(where: string, why: string): AssetError {
  return new AssetError(
    `cannot read the asset ${where}: ${why}. Serve the directory 'assets' of the package and pass ` +
      "its address in the option 'assets'",
  );
}

export function wrongHash(where: string): AssetError {
  return new AssetError(
    `the asset ${where} does not have the content that its name says: it was damaged or replaced. ` +
      "Copy the directory 'assets' of the package again",
  );
}
