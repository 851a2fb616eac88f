#| packages: pillow
#| pixels: 0.001
import io
from PIL import Image, ImageChops, ImageColor, ImageEnhance, ImageFilter, ImageOps, ImageStat

g = Image.linear_gradient("L").resize((64, 48))
im = Image.merge(
    "RGB", (g, g.transpose(Image.Transpose.ROTATE_180), Image.radial_gradient("L").resize((64, 48)))
)
print(im.size, im.mode, im.getpixel((10, 10)), im.getextrema(), ImageStat.Stat(im).mean)
for name, made in {
    "resized": im.resize((100, 30), Image.Resampling.LANCZOS),
    "nearest": im.resize((20, 20), Image.Resampling.NEAREST),
    "rotated": im.rotate(30, expand=True, resample=Image.Resampling.BICUBIC),
    "cropped": im.crop((5, 5, 40, 40)),
    "grey": im.convert("L"),
    "one": im.convert("1"),
    "palette": im.convert("P", palette=Image.Palette.ADAPTIVE, colors=16),
    "blur": im.filter(ImageFilter.GaussianBlur(2)),
    "edges": im.filter(ImageFilter.FIND_EDGES),
    "sharp": im.filter(ImageFilter.UnsharpMask()),
    "median": im.filter(ImageFilter.MedianFilter(3)),
    "auto": ImageOps.autocontrast(im),
    "equal": ImageOps.equalize(im),
    "inverted": ImageOps.invert(im),
    "contrast": ImageEnhance.Contrast(im).enhance(1.5),
    "hsv": im.convert("HSV").convert("RGB"),
    "blend": Image.blend(im, ImageOps.mirror(im), 0.4),
    "warped": im.transform((64, 48), Image.Transform.AFFINE, (1, 0.2, 0, 0.1, 1, 0)),
    "posters": ImageOps.posterize(im, 2),
    "thumb": ImageOps.fit(im, (30, 30)),
}.items():
    made.save(f"{name}.png")
    print(name, made.size, made.mode)
print(
    ImageChops.difference(im, im).getbbox(),
    ImageColor.getrgb("rebeccapurple"),
    im.histogram()[:5],
    im.getcolors(10),
)
rgba = im.copy()
rgba.putalpha(g)
rgba.save("alpha.png")
small = im.copy()
small.thumbnail((20, 20))
print(
    small.size, rgba.mode, len(im.tobytes()), im.split()[0].mode, im.resize((2, 1)).getpixel((1, 0))
)
try:
    Image.open(io.BytesIO(b"not an image"))
except Exception as error:
    print(type(error).__name__)
