#| packages: pillow
#| pixels: 0.02
from PIL import Image, ImageSequence, features

g = Image.radial_gradient("L").resize((80, 60))
im = Image.merge("RGB", (g, g.rotate(90), g.rotate(180)))
for name in ("png", "jpg", "gif", "bmp", "tif", "webp"):
    im.save(f"image.{name}")
    with Image.open(f"image.{name}") as back:
        print(name, back.format, back.size, back.mode)
im.save("best.jpg", quality=95, progressive=True)
im.save("lossless.webp", lossless=True)
im.save("deflate.tif", compression="tiff_deflate", dpi=(300, 300))
im.save("lzw.tif", compression="tiff_lzw")
frames = [im.rotate(a) for a in (0, 30, 60)]
frames[0].save("moving.gif", save_all=True, append_images=frames[1:], duration=100, loop=0)
with Image.open("moving.gif") as moving:
    print(
        moving.n_frames, moving.info["duration"], [f.size for f in ImageSequence.Iterator(moving)]
    )
exif = Image.Exif()
exif[0x010F], exif[0x0112] = "wasmsand", 6
im.save("exif.jpg", exif=exif)
with Image.open("exif.jpg") as back:
    print(dict(back.getexif()), back.info.keys() >= {"exif"})
im.save("page.pdf")
im.save("icon.ico", sizes=[(16, 16), (32, 32)])
im.save("image.j2k")
with Image.open("image.j2k") as back:
    print(back.format, back.size, max(high - low for low, high in back.getextrema()) > 0)
print(
    [
        name
        for name in ("jpg", "jpg_2000", "zlib", "libtiff", "webp", "freetype2", "littlecms2")
        if features.check(name)
    ]
)
